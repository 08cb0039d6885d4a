// What the browser remembers of the reader. The page works without it: storage may be off, full or forbidden.

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function remember(name: string, text: string): void {
  try {
    localStorage.setItem(name, text);
  } catch {
    // It is remembered as long as the page is open.
  }
}
