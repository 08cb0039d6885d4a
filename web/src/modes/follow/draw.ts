import type { Candidate } from '../../lib/types';

/** The candidate that a uniform number between 0 and 1 falls on; never one that was taken out. */
export function draw(candidates: Candidate[], uniform: number): Candidate {
  const kept = candidates.filter(({ drawn }) => drawn > 0);
  let left = uniform * kept.reduce((sum, { drawn }) => sum + drawn, 0);
  for (const candidate of kept) {
    left -= candidate.drawn;
    if (left < 0) return candidate;
  }
  return kept[kept.length - 1] ?? candidates[0];
}
