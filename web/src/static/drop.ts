// Files that are dropped anywhere on the page, one folder deep.

type Entry = FileSystemEntry & Partial<FileSystemFileEntry> & Partial<FileSystemDirectoryEntry>;

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((resolve, reject) => entry.file(resolve, reject));

async function entriesOf(folder: FileSystemDirectoryEntry): Promise<Entry[]> {
  const reader = folder.createReader();
  const all: Entry[] = [];
  for (;;) {
    // At most 100 at a time.
    const some = await new Promise<Entry[]>((resolve, reject) => reader.readEntries((found) => resolve(found as Entry[]), reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}

/** A file with the folder that it was dropped in, as a chosen folder's files have it. */
function within(folder: string, file: File): File {
  Object.defineProperty(file, 'webkitRelativePath', { value: `${folder}/${file.name}` });
  return file;
}

export async function droppedFiles(items: DataTransferItemList): Promise<File[]> {
  // All are taken before the first wait: the list is empty afterwards.
  const entries = [...items].map((item) => item.webkitGetAsEntry() as Entry | null).filter((entry) => entry !== null);
  const found = await Promise.all(entries.map(async (entry) => {
    if (entry.isFile) return [await fileOf(entry as unknown as FileSystemFileEntry)];
    const files = (await entriesOf(entry as unknown as FileSystemDirectoryEntry)).filter(({ isFile }) => isFile);
    return Promise.all(files.map(async (each) => within(entry.name, await fileOf(each as unknown as FileSystemFileEntry))));
  }));
  return found.flat();
}

/** Calls `open` with what is dropped on the page; while files are over it, the document has the class `dropping`. */
export function watchDrops(open: (files: File[]) => void): void {
  const mark = (on: boolean) => document.documentElement.classList.toggle('dropping', on);
  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) mark(false);
  });
  addEventListener('drop', (event) => {
    mark(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    void droppedFiles(event.dataTransfer!.items).then(open);
  });
}
