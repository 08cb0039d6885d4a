import { describe, expect, it } from 'vitest';
import { clusterQuery, longTime, readCluster, shortTime, usual, writeCluster } from './plan';

describe('a cluster in a link', () => {
  it('says what differs from the usual, and is read again', () => {
    expect(writeCluster(usual)).toBe('');
    const cluster = { ...usual, nodes: 8, link: 2.5, shard: 1, bf16: 0 };
    expect(writeCluster(cluster)).toBe('nodes:8 link:2.5 shard:1 bf16:0');
    expect(readCluster(writeCluster(cluster))).toEqual(cluster);
    expect(readCluster(undefined)).toEqual(usual);
  });
  it('ignores what no cluster has', () => {
    expect(readCluster('nodes:0 nodes:1.5 link:fast shard:4 colour:3 latency: toString:1 nodes:-2')).toEqual(usual);
    expect(readCluster('nodes:Infinity link:NaN')).toEqual(usual);
  });
});

describe('a request', () => {
  it('is in bytes, seconds and operations', () => {
    const query = clusterQuery({ ...usual, link: 8, latency: 50, memory: 2, speed: 3, tokens: 300 });
    expect(query).toMatchObject({ bandwidth: 1e9, memory: 2e9, flops: 3e9, tokens: 3e11, exchange: 'during', dtype: 'bf16' });
    expect(query.latency).toBeCloseTo(5e-5, 12);
    expect(clusterQuery(usual).flops).toBeUndefined();
  });
});

describe('times', () => {
  it('have the largest unit that there is one of', () => {
    expect([0.5, 1, 90, 7200, 3.4 * 86400, 34 * 86400, 12.4 * 31557600].map(longTime)).toEqual(['0.5 seconds', '1 second', '1.5 minutes', '2 hours', '3.4 days', '34 days', '12 years']);
    expect([250.4, 12.34, 0.0456, 2e-6].map(shortTime)).toEqual(['250 s', '12.3 s', '45.6 ms', '2 µs']);
  });
});
