import { capitalised } from './statistics';

/** A sentence; the server's messages begin small. */
export function messageOf(error: unknown): string {
  return capitalised(error instanceof Error ? error.message : String(error));
}
