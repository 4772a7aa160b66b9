__all__ = ['ttypes', 'constants', 'TaskExecutor']
