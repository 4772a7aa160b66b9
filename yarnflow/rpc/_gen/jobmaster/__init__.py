__all__ = ['ttypes', 'constants', 'JobMaster']
