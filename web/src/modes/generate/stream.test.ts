import { expect, it } from 'vitest';
import type { GeneratedToken } from '../../lib/types';
import { DrawAhead, type Generate } from './stream';

const token = (id: number): GeneratedToken => ({ step: id, token: { id, text: `${id}` }, text: `${id}`, probability: 0.5, drawn: 1, candidates: [] });
const story = (count: number, finish = 'length'): Generate => async function* () {
  for (let id = 0; id < count; id++) {
    await Promise.resolve();
    yield { kind: 'token', token: token(id) };
  }
  yield { kind: 'done', finish_reason: finish, trace: {} as never };
};
const request = { max_new_tokens: 3 };

it('gives tokens one by one, then the finish reason', async () => {
  const ahead = new DrawAhead(story(2, 'stop'), request);
  expect((await ahead.take()).token!.token.id).toBe(0);
  expect((await ahead.take()).token!.token.id).toBe(1);
  expect(await ahead.take()).toEqual({ token: null, finish: 'stop' });
});

it('gives a returned token again', async () => {
  const ahead = new DrawAhead(story(3), request);
  const first = (await ahead.take()).token!;
  ahead.giveBack(first);
  expect((await ahead.take()).token).toBe(first);
  expect((await ahead.take()).token!.token.id).toBe(1);
});

it('ends a pending wait when stopped', async () => {
  const never: Generate = async function* (_, signal) {
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  const ahead = new DrawAhead(never, request);
  const taken = ahead.take();
  ahead.stop();
  expect((await taken).finish).toBe('stopped');
});

it('throws errors of the server', async () => {
  const failing: Generate = async function* () {
    throw new Error('the text is too long');
  };
  await expect(new DrawAhead(failing, request).take()).rejects.toThrow('too long');
});
