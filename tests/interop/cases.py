"""A model of RankLib, written by hand."""

RANKLIB = """## {name}
## No. of trees = 2

{ensembles}"""
ENSEMBLE = """<ensemble>
	<tree id="1" weight="0.1">
		<split>
			<feature> 2 </feature>
			<threshold> 0.5 </threshold>
			<split pos="left">
				<feature> 1 </feature>
				<threshold> -1.0 </threshold>
				<split pos="left">
					<output> -2.0 </output>
				</split>
				<split pos="right">
					<output> 1.5 </output>
				</split>
			</split>
			<split pos="right">
				<output> 4.0 </output>
			</split>
		</split>
	</tree>
	<tree id="2" weight="0.5">
		<split>
			<output> 0.25 </output>
		</split>
	</tree>
</ensemble>
"""
