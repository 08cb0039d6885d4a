// Tokens and words of a text, and what a model has read of them.

export interface Token {
  id: number;
  text: string;
  bytes?: number[];
}

/** What a model has read, as far as it is known. */
export interface Read {
  title: string;
  tokens: number;
  /** How many different words; null where that is not known. */
  words: number | null;
  /** Of a translator's targets. */
  target_words: number | null;
}

/** The words of a text that the model has not read. Ranges are [begin, end). */
export interface Unread {
  /** How many different words the text has. */
  of: number;
  words: { text: string; bytes: [number, number]; tokens: [number, number] }[];
  /** A sentence that says so; null where the model has read every word. */
  note: string | null;
}

/** The text between spaces, without surrounding punctuation; or a token that belongs to no word. Its tokens are [begin, end). */
export interface Word {
  text: string;
  begin: number;
  end: number;
}
