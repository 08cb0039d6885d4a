import { describe, expect, it } from 'vitest';
import { joinedDepths } from './depth_names';

describe('names of depths', () => {
  it('join those of blocks that follow each other', () => {
    expect(joinedDepths(['after block 0', 'after block 1', 'after block 2'])).toBe('after blocks 0 to 2');
    expect(joinedDepths(['the embedding alone', 'after block 1', 'after block 3', 'after block 4'])).toBe('the embedding alone, after block 1 and after blocks 3 to 4');
    expect(joinedDepths(['after block 3'])).toBe('after block 3');
  });
});
