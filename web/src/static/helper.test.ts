import { describe, expect, it } from 'vitest';
import { Chooser, largestUnrounded } from './chooser';
import { fakeWorker } from './engine_fixture';
import type { Release } from './release';

const base = 'https://school.example/heed/';
const release: Release = {
  engine: 'engine-1/heed.js',
  models: {
    starter: { folder: 'models/starter-1/', files: [{ path: 'config.json', bytes: 2 }] },
    english: { folder: 'models/english-1/', files: [{ path: 'config.json', bytes: 2 }] },
    recorded: { folder: 'models/run-1/', files: [{ path: 'run.json', bytes: 2 }] },
  },
};
const files = Object.fromEntries(Object.values(release.models).flatMap(({ folder, files: all }) => all.map(({ path }) => [base + folder + path, '{}'])));
const own = (bytes: number) => [{ path: 'config.json', bytes: 2, file: new Blob(['{}']) }, { path: 'model.safetensors', bytes, file: new Blob(['w']) }];

function make() {
  const worker = fakeWorker(files);
  const told: (string | null)[] = [];
  const chooser = new Chooser({ release, base, makePort: worker.makePort, ownFiles: async (name) => (name === 'mine' ? own(9) : name === 'large' ? own(largestUnrounded + 1) : null), list: async () => [], tell: (message) => told.push(message) });
  return { ...worker, chooser, told };
}

const train: RequestInit = { method: 'POST', body: '{}' };
const trace = (step: number): RequestInit => ({ method: 'POST', body: JSON.stringify({ text: 'a', model: { run: 'live-1', step } }) });

describe('long work', () => {
  it('has an engine of its own, and the first one answers meanwhile', async () => {
    const { chooser, fake, ports } = make();
    await chooser.choose('');
    await chooser.fetch('/api/training');
    expect(ports.length).toBe(1);
    await chooser.fetch('/api/training', train);
    await chooser.fetch('/api/training');
    await chooser.fetch('/api/runs');
    await chooser.fetch('/api/traces', { method: 'POST', body: JSON.stringify({ text: 'a' }) });
    await chooser.fetch('/api/neurons/0/7/contexts?top=10');
    expect(fake.workers.map(({ requests }) => requests)).toEqual([
      ['GET /api/training', 'POST /api/traces'],
      ['POST /api/training', 'GET /api/training', 'GET /api/runs', 'GET /api/neurons/0/7/contexts?top=10'],
    ]);
    expect(ports.map(({ terminated }) => terminated)).toEqual([false, false]);
  });

  it('a checkpoint is handed over to the engine that shows it, once, and again to its successor', async () => {
    const { chooser, fake } = make();
    await chooser.choose('');
    await chooser.fetch('/api/training', train);
    await chooser.fetch('/api/traces', trace(250));
    expect([...fake.workers[0].files.keys()].filter((path) => path.startsWith('/runs/'))).toEqual(['/runs/live-1/run.json', '/runs/live-1/checkpoints/00000250/config.json']);
    expect(new TextDecoder().decode(fake.workers[0].files.get('/runs/live-1/run.json'))).toBe('run.json');
    fake.workers[0].files.clear();
    await chooser.fetch('/api/traces', trace(250));
    expect(fake.workers[0].files.size).toBe(0);
    // There is none yet: it is asked for again later.
    await chooser.fetch('/api/traces', trace(750));
    await chooser.choose('mine');
    await chooser.fetch('/api/traces', trace(250));
    expect([...fake.workers[2].files.keys()]).toContain('/runs/live-1/checkpoints/00000250/config.json');
    expect(fake.workers[1].requests).toEqual(['POST /api/training']);
  });

  it('is about the model that the page shows', async () => {
    const { chooser, fake } = make();
    await chooser.choose('english');
    await chooser.fetch('/api/training', train);
    await chooser.choose('');
    await chooser.fetch('/api/neurons/0/7/contexts?top=10&model=starter');
    await chooser.fetch('/api/probes/culprit?text=a+b');
    expect(fake.workers[1].requests.slice(1)).toEqual(['GET /api/neurons/0/7/contexts?top=10&model=starter', 'GET /api/probes/culprit?text=a+b']);
    // The training goes on: another model of the reader's own is the first engine's.
    await chooser.choose('mine');
    await chooser.fetch('/api/neurons/0/7/contexts');
    expect(fake.workers[2].requests).toEqual(['GET /api/neurons/0/7/contexts']);
  });

  it('of the reader’s own model has a second engine with it, but of a large one', async () => {
    const { chooser, fake } = make();
    await chooser.choose('mine');
    await chooser.fetch('/api/neurons/0/7/contexts');
    expect([fake.opened.map(({ model }) => model), fake.workers[1].requests]).toEqual([['/models/mine', '/models/mine'], ['GET /api/neurons/0/7/contexts']]);
    await chooser.choose('large');
    await chooser.fetch('/api/neurons/0/7/contexts');
    expect(fake.workers.at(-1)!.requests).toEqual(['GET /api/neurons/0/7/contexts']);
    expect(fake.opened.at(-1)).toEqual({ model: '/models/large', options: { name: 'large', dtype: 'int8' } });
  });

  it('that ends its engine ends no other; the names of its runs are not used again', async () => {
    const { chooser, fake, told } = make();
    await chooser.choose('');
    await chooser.fetch('/api/training', train);
    expect((await chooser.fetch('/api/training/trap')).status).toBe(503);
    expect(told).toEqual(['The engine that trains stopped (memory access out of bounds). Its run is lost; a new one can be started.']);
    await chooser.fetch('/api/training', train);
    expect(fake.workers[2].files.has('/runs/live-1/lost')).toBe(true);
    expect((await chooser.fetch('/nothing')).status).toBe(204);
    expect(fake.workers.length).toBe(3);
  });
});
