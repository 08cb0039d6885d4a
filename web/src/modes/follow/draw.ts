import type { Candidate } from '../../lib/types';

/** The candidate drawn by a uniform number between 0 and 1; never a removed one. */
export function draw(candidates: Candidate[], uniform: number): Candidate {
  const kept = candidates.filter(({ drawn }) => drawn > 0);
  let left = uniform * kept.reduce((sum, { drawn }) => sum + drawn, 0);
  for (const candidate of kept) {
    left -= candidate.drawn;
    if (left < 0) return candidate;
  }
  return kept[kept.length - 1] ?? candidates[0];
}
