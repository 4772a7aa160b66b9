__all__ = ['ttypes', 'constants', 'Driver']
