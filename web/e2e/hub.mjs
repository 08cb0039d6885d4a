// A hub of models on this machine, which serves the files of a directory as one repository, and misbehaves when told to.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const commit = '0123456789abcdef0123456789abcdef01234567';

/** Of git: what the hub names small files by. */
const blobOf = (content) => createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');

/**
 * `hub.misbehave(request, response, content)` answers for the weights instead, where it is set. `hub.ranges`: the first
 * bytes that were asked for.
 */
export async function startHub(repository, directory) {
  const files = new Map(readdirSync(directory).map((name) => [name, readFileSync(path.join(directory, name))]));
  const hub = { misbehave: null, ranges: [], weights: files.get('model.safetensors').length };
  const siblings = [...files].map(([name, content]) => (name.endsWith('.safetensors')
    ? { rfilename: name, size: content.length, blobId: '7'.repeat(40), lfs: { sha256: createHash('sha256').update(content).digest('hex'), size: content.length } }
    : { rfilename: name, size: content.length, blobId: blobOf(content) }));

  const server = http.createServer((request, response) => {
    if (request.url.startsWith(`/api/models/${repository}/revision/`)) {
      response.end(JSON.stringify({ id: repository, sha: commit, siblings }));
      return;
    }
    const start = `/${repository}/resolve/${commit}/`;
    const name = request.url.startsWith(start) ? request.url.slice(start.length) : '';
    const content = files.get(name);
    if (!content) {
      response.writeHead(404).end();
      return;
    }
    const first = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    if (name === 'model.safetensors') hub.ranges.push(first);
    if (name === 'model.safetensors' && hub.misbehave) {
      hub.misbehave(request, response, content);
      return;
    }
    const headers = { ETag: `"${name}"`, 'Content-Length': content.length - first };
    if (first > 0) headers['Content-Range'] = `bytes ${first}-${content.length - 1}/${content.length}`;
    response.writeHead(first > 0 ? 206 : 200, headers).end(content.subarray(first));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  hub.address = `http://127.0.0.1:${server.address().port}`;
  hub.stop = () => new Promise((resolve) => {
    server.closeAllConnections();
    server.close(resolve);
  });
  return hub;
}
