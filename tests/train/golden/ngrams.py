#!/usr/bin/env python3
"""Prints ngrams.json: how well counted n-grams, smoothed as Witten and Bell do, predict a text. Written with
dictionaries of strings, from the formula alone:

    p(c | g) = (count(gc) + T(g) p(c | g'))/(N(g) + T(g))
"""

import json
import math
from collections import Counter, defaultdict

LONGEST, CHARACTERS = 5, 6


def made(size, state):
    """Letters that depend on the two before them more often than not."""
    text = ''
    while len(text) < size:
        state = (1103515245 * state + 12345) % 2**31
        drawn = state >> 16
        if len(text) > 1 and drawn % 10 < 6:
            text += 'abcdef'[(ord(text[-1]) + 2 * ord(text[-2])) % CHARACTERS]
        else:
            text += 'abcdef'[drawn // 10 % CHARACTERS]
    return text


def main():
    text, judged = made(300, 1), made(100, 2)
    followers = defaultdict(Counter)
    for length in range(LONGEST):
        for i in range(length, len(text)):
            followers[text[i - length:i]][text[i]] += 1

    def probability(c, before):
        shorter = probability(c, before[1:]) if before else 1 / CHARACTERS
        seen = followers.get(before)
        if not seen:
            return shorter
        return (seen[c] + len(seen) * shorter) / (sum(seen.values()) + len(seen))

    nll, accuracy = [], []
    for n in range(1, LONGEST + 1):
        loss = right = 0
        for i in range(1, len(judged)):
            before = judged[max(0, i - n + 1):i]
            p = [probability(c, before) for c in 'abcdef']
            loss -= math.log(p['abcdef'.index(judged[i])])
            right += p.index(max(p)) == 'abcdef'.index(judged[i])
        nll.append(loss / (len(judged) - 1))
        accuracy.append(right / (len(judged) - 1))
    numbers = lambda s: ['abcdef'.index(c) for c in s]
    print(json.dumps({'characters': CHARACTERS, 'text': numbers(text), 'judged': numbers(judged), 'nll': nll,
                      'accuracy': accuracy}))


main()
