"""Figures that the paper prints, to stand beside ours.

Yunfeng Zhao, Guoxian Yu, Lei Liu, Zhongmin Yan, Lizhen Cui and Carlotta Domeniconi, "Few-Shot
Partial-Label Learning", IJCAI 2021.

The table on Omniglot is all it prints in full. Its results on miniImageNet, its study of noise and
its study of k and lambda are curves and bars without numbers, and only what the text says about
them can be held here. :func:`find` therefore has nothing to say about miniImageNet.
"""

from __future__ import annotations

from typing import NamedTuple

N_WAY, N_SHOT, R = (5, 10, 20, 30), (5, 10), (1, 2, 3)

# "report average results in 100 rounds": the tasks behind every mean.
N_ROUNDS = 100

# "We applied signed-rank test [...] between FsPLL/FsPLL+ and other compared methods, all p-values
# are small than 0.001."
P_VALUES_BELOW = 0.001

# The study of noise: "FsPLL improves the accuracy of PN by 88%, and FsPLL+ improves this of PN+ by
# 13%", at 10-way 5-shot with r = 2. What FsPLL++ and PN++ reach is in its figure only.
NOISE_GAINS = {("FsPLL", "PN"): 0.88, ("FsPLL+", "PN+"): 0.13}

# The study of parameters: "lambda=0.5 and k ≈ K2-1 give a better performance".
BEST_MANIFOLD_WEIGHT = 0.5

# Accuracy on Omniglot, mean±standard deviation. After method and r, a column for each N2, and in it
# for each K2.
_OMNIGLOT = """
FsPLL    1 .892±.083 .895±.051 .789±.045 .823±.067 .712±.034 .757±.056 .665±.015 .701±.046
FsPLL    2 .673±.098 .742±.073 .712±.068 .756±.063 .654±.049 .689±.063 .598±.063 .602±.038
FsPLL    3 .591±.118 .708±.131 .571±.105 .631±.081 .473±.061 .557±.057 .432±.036 .495±.037
FsPLL-nM 1 .852±.092 .886±.072 .776±.070 .816±.062 .695±.053 .745±.047 .643±.008 .693±.042
FsPLL-nM 2 .616±.171 .706±.136 .566±.100 .665±.087 .494±.065 .584±.056 .442±.053 .527±.048
FsPLL-nM 3 .369±.158 .482±.180 .404±.109 .519±.105 .351±.066 .461±.064 .313±.052 .415±.050
PN       1 .579±.104 .636±.105 .435±.070 .485±.071 .317±.043 .360±.044 .255±.032 .291±.034
PN       2 .476±.121 .559±.114 .378±.073 .442±.074 .270±.044 .321±.047 .213±.032 .258±.033
PN       3 .337±.115 .398±.114 .277±.066 .328±.063 .184±.037 .222±.037 .143±.026 .171±.026
MAML     1 .673±.079 .647±.097 .592±.067 .642±.053 .514±.061 .544±.032 .421±.018 .475±.065
MAML     2 .476±.121 .553±.098 .458±.078 .549±.093 .427±.037 .472±.075 .397±.043 .437±.036
MAML     3 .379±.124 .469±.112 .342±.076 .403±.068 .367±.071 .381±.053 .345±.023 .407±.061
PL-AGGD  1 .664±.118 .777±.103 .576±.086 .714±.076 .450±.053 .649±.063 .459±.043 .601±.057
PL-AGGD  2 .496±.131 .668±.129 .490±.086 .664±.082 .451±.055 .578±.061 .416±.053 .545±.054
PL-AGGD  3 .311±.114 .439±.134 .419±.089 .537±.094 .376±.068 .468±.066 .375±.060 .453±.054
PALOC    1 .616±.116 .726±.111 .528±.075 .651±.078 .447±.058 .568±.058 .392±.047 .513±.049
PALOC    2 .473±.117 .611±.125 .456±.083 .591±.086 .385±.056 .525±.057 .402±.049 .524±.061
PALOC    3 .308±.117 .435±.126 .380±.089 .523±.092 .349±.056 .483±.062 .310±.051 .407±.056
PL-ECOC  1 .473±.065 .694±.109 .513±.076 .619±.073 .279±.040 .418±.054 .363±.042 .465±.046
PL-ECOC  2 .425±.105 .481±.114 .361±.081 .531±.086 .175±.044 .343±.047 .292±.046 .408±.052
PL-ECOC  3 .373±.125 .401±.098 .293±.076 .435±.081 .079±.024 .264±.048 .225±.048 .326±.053
PL-LEAF  1 .629±.117 .768±.107 .568±.087 .712±.070 .495±.060 .630±.060 .452±.043 .592±.054
PL-LEAF  2 .484±.134 .650±.125 .489±.086 .645±.083 .436±.059 .586±.060 .398±.045 .525±.058
PL-LEAF  3 .246±.103 .452±.109 .415±.091 .520±.089 .388±.056 .445±.058 .319±.043 .414±.050
FsPLL+   1 .995±.029 .997±.009 .990±.020 .993±.012 .986±.009 .990±.010 .981±.009 .986±.008
FsPLL+   2 .975±.076 .997±.009 .991±.010 .994±.010 .986±.009 .989±.012 .980±.009 .985±.007
FsPLL+   3 .972±.072 .996±.011 .990±.014 .994±.009 .985±.009 .989±.012 .980±.010 .985±.008
PN+      1 .965±.046 .985±.030 .956±.037 .981±.021 .939±.027 .968±.020 .924±.025 .958±.018
PN+      2 .825±.117 .926±.076 .871±.064 .945±.041 .850±.047 .926±.032 .826±.040 .908±.030
PN+      3 .555±.154 .722±.143 .744±.092 .885±.064 .748±.062 .874±.046 .724±.047 .852±.037
MAML+    1 .858±.016 .902±.036 .849±.026 .877±.014 .774±.019 .831±.023 .638±.035 .795±.189
MAML+    2 .675±.076 .798±.056 .783±.024 .760±.076 .668±.023 .727±.025 .619±.026 .679±.450
MAML+    3 .452±.135 .693±.098 .608±.076 .665±.037 .473±.027 .598±.035 .598±.027 .596±.035
"""


class Printed(NamedTuple):
    """An accuracy as the paper prints it."""

    mean: float
    std: float


def _read(table: str) -> dict[tuple[str, int, int, int], Printed]:
    settings = [(n_way, n_shot) for n_way in N_WAY for n_shot in N_SHOT]
    figures = {}
    for line in table.strip().splitlines():
        method, r, *cells = line.split()
        for (n_way, n_shot), cell in zip(settings, cells, strict=True):
            mean, std = map(float, cell.split("±"))
            figures[method, n_way, n_shot, int(r)] = Printed(mean, std)
    return figures


_FIGURES = _read(_OMNIGLOT)
METHODS = tuple(dict.fromkeys(method for method, *_ in _FIGURES))


def find(method: str, n_way: int, n_shot: int, r: int) -> Printed | None:
    """Return what the paper prints for a method on Omniglot, or None where it prints nothing.

    Examples
    --------
    >>> find("FsPLL", 5, 5, r=1)
    Printed(mean=0.892, std=0.083)
    """
    return _FIGURES.get((method, n_way, n_shot, r))


def best_n_neighbors(n_shot: int) -> int:
    """Return the k that the paper calls best, K2 - 1: the other samples of one's class."""
    return n_shot - 1
