"""What people fit: rankers with scikit-learn's manners."""
