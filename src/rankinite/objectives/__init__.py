"""Where documents should move: lambda gradients and pointwise losses, all behind one protocol."""
