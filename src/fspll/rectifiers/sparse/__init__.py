"""Many samples, many classes: rectification whose cost grows with the candidate entries.

The dense rules (:mod:`fspll.rectifiers.paper`, :mod:`fspll.rectifiers.evidence`) build arrays of
n x n and n x l entries for n samples and l classes. Here candidates stay sparse, and no array is
larger than a constant times the number of candidate entries, the samples' features or the
prototypes, apart from blocks of a fixed size.
"""
