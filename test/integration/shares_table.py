"""shares_table.py DEMAND DEMAND DEMAND: what three children of a parent with 1,000 get of these demands, with guarantees of
100, 100 and 0 and weights of 1, 1 and 2: one unit after the other goes to the one that has least for its weight beyond what
it is guaranteed, and an unused guarantee to nobody."""

import sys

GUARANTEES, WEIGHTS, TOTAL = (100, 100, 0), (1, 1, 2), 1000

demands = [int(word) for word in sys.argv[1:]]
beyond = [0, 0, 0]
for _ in range(TOTAL - sum(GUARANTEES)):
    wanting = [i for i in range(3) if GUARANTEES[i] + beyond[i] < demands[i]]
    if not wanting:
        break
    beyond[min(wanting, key=lambda i: beyond[i] / WEIGHTS[i])] += 1
print(*(min(demands[i], GUARANTEES[i] + beyond[i]) for i in range(3)))
