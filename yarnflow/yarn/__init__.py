"""YARN by skein and by the ResourceManager's REST interface.

The only package that knows skein.  :mod:`yarnflow.yarn.submitter` belongs to clients,
:mod:`yarnflow.yarn.application` to what runs inside of containers, :mod:`yarnflow.yarn.web` to both.
Never decides how many containers there should be, nor when an application ends.
"""
