__all__ = ['ttypes', 'constants', 'Master']
