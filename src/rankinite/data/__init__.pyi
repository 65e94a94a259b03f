from .ranking_data import RankingData as RankingData
