__all__ = ['ttypes', 'constants', 'Dispatcher']
