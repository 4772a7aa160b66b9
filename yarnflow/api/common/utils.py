"""PyFlink's wrapper of Java objects; there are none here."""

from yarnflow.graph.compatibility import NO_JVM, refused_class

JavaObjectWrapper = refused_class("JavaObjectWrapper", NO_JVM)
