import { describe, expect, it } from 'vitest';
import { ApiError } from '../../lib/api';
import { firstThatRuns, tellingToken, sampleSentence, unknownCharacters } from './sentence';

describe('the sentence that checkpoints are compared on', () => {
  const withoutQuotes = async (text: string) => {
    if (text.includes('"')) throw new ApiError(400, 'the vocabulary has no \'"\'');
  };

  it('is the first that the run can tokenize', async () => {
    const refusal = { text: '"No", said the cook.', reason: 'the vocabulary has no \'"\'' };
    expect(await firstThatRuns(['The cook said no.'], withoutQuotes)).toEqual({ text: 'The cook said no.', refusal: null });
    expect(await firstThatRuns(['"No", said the cook.', 'once upon'], withoutQuotes)).toEqual({ text: 'once upon', refusal });
    expect(await firstThatRuns(['"No", said the cook.', ''], withoutQuotes)).toEqual({ text: null, refusal });
  });

  it('is not replaced where the checkpoint is at fault', async () => {
    const damaged = () => Promise.reject(new ApiError(422, 'model.safetensors is damaged'));
    await expect(firstThatRuns(['a', 'b'], damaged)).rejects.toThrow('damaged');
  });

  it('is the beginning of the latest sample, up to a whole word', () => {
    expect(sampleSentence([])).toBe('');
    expect(sampleSentence([{ step: 1, text: 'a' }, { step: 2, text: ' on the\nhill ' }])).toBe('on the hill');
    expect(sampleSentence([{ step: 1, text: 'the quick brown fox jumps over the dog' }])).toBe('the quick brown fox jumps over');
    expect(sampleSentence([{ step: 1, text: 'x'.repeat(50) }])).toBe('x'.repeat(32));
  });

  /** A model of the characters a to z and the space. */
  const letters = async (text: string) => {
    const [first] = text.match(/[^a-z ]/u) ?? [];
    if (first) throw new ApiError(400, `the character "${first}" (U+${first.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}) at byte 0 is not among the 27 that this tokenizer knows`);
  };

  it('is refused with all characters that the model does not know', async () => {
    const { text, refusal } = await firstThatRuns(['Où est Ève? Où?', 'the hare'], letters);
    expect(text).toBe('the hare');
    expect(refusal!.reason).toContain('“O”, “ù”, “È” and “?” are not among them');
    expect((await firstThatRuns(['why?'], letters)).refusal!.reason).toContain('“?” is not among them');
    expect(await unknownCharacters('🦊', 'the character "🦊" (U+1F98A) at byte 0 is not among the 27', letters)).toEqual(['🦊']);
    expect(await unknownCharacters('a b', 'the text has 90 tokens; the context has 64', letters)).toBeNull();
  });

  it('is asked about where what comes is a word, not a full stop', () => {
    const tokens = (texts: string[]) => texts.map((text) => ({ text }));
    expect(tellingToken(tokens(['The', ' hare', ' slept', '.']))).toBe(1);
    expect(tellingToken(tokens(['Who', '?', '"', '\n']))).toBe(0);
    expect(tellingToken(tokens(['The', ' hare']))).toBe(1);
    expect(tellingToken(tokens(['.', '.']))).toBe(1);
  });
});
