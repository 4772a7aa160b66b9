__all__ = ['ttypes', 'constants', 'ResourceManager']
