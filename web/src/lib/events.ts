// Server-sent events out of a response's text, as they come; pieces may end anywhere.

export interface ServerEvent {
  event: string;
  data: string;
}

export class EventParser {
  #rest = '';

  /** The events that the text so far completes. Comments (heartbeats) are passed over. */
  push(text: string): ServerEvent[] {
    this.#rest += text;
    const blocks = this.#rest.split(/\r?\n\r?\n/);
    this.#rest = blocks.pop()!;
    return blocks.flatMap((block) => {
      let event = 'message';
      const data: string[] = [];
      for (const line of block.split(/\r?\n/)) {
        const [, field, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
        if (field === 'event') event = value;
        if (field === 'data') data.push(value);
      }
      return data.length > 0 ? [{ event, data: data.join('\n') }] : [];
    });
  }
}

export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
