import { expect, it } from 'vitest';
import { elsewhere } from './elsewhere';

it('says each difference in one sentence', () => {
  for (const sentence of Object.values(elsewhere)) expect(sentence).toMatch(/^[A-Z][^.!?]*\.$/);
});
