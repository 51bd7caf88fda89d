"""What candidate sets can and cannot decide: the ceiling, inseparable classes, what to ask next.

A cluster holds the samples of one class, distinct clusters are distinct classes, and nobody says
which: a *matching* gives every cluster a label of its own. All matchings that agree with every
candidate set are equally likely, and nothing but a further answer can choose among them. When none
agrees with all sets, a matching costs the factor ``eps`` for every sample whose set lacks its
label.

Shapes: n samples, K clusters, l classes with K <= l; a *group* is a part of m clusters and q labels
that can be matched without regard to the others.
"""

from fspll.diagnosis.analysis import Diagnosis, Question, ceiling, diagnose

__all__ = ["Diagnosis", "Question", "ceiling", "diagnose"]
