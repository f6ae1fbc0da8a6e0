import { describe, expect, it } from 'vitest';
import type { Caller } from '../../contract/roles.ts';
import { isOwnOrigin, knownHost, refuseForeignOrigin, refuseUnknownHost } from './origin.ts';

const ours = new Set(['millrace.example', '127.0.0.1']);
const session: Caller = { kind: 'session', role: 'operator', tenantId: null, tenant: null, actor: 'x' };
const key: Caller = { kind: 'key', role: 'operator', tenantId: null, tenant: null, actor: 'x' };
const task: Caller = { kind: 'task', tenantId: 'a', run: 'r', lease: 1 };
const request = (method: string, headers: Record<string, string>) => new Request('http://x/', { method, headers });
const codeOf = (work: () => void): string | undefined => {
  try {
    work();
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('knownHost and refuseUnknownHost', () => {
  it('a host is known if it is an address, loopback or a configured name, with or without a port', () => {
    for (const host of [
      '127.0.0.1',
      '127.0.0.1:8080',
      '[::1]:8080',
      '[::1]',
      'localhost',
      'LOCALHOST:1',
      '10.1.2.3',
      'Millrace.Example',
      'millrace.example:443',
    ])
      expect(knownHost(host, ours), host).toBe(true);
  });

  it('any other host is unknown, so that no page reaches the API under its own name (DNS rebinding)', () => {
    for (const host of [
      null,
      '',
      'evil.example',
      'evil.example:8080',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      'xmillrace.example',
      'millrace.example.evil',
      '127.0.0.1:8080@evil.example',
    ])
      expect(knownHost(host, ours), String(host)).toBe(false);
  });

  it('a request with a key may use any host, because no page can make a browser send a key', () => {
    const unknown = { host: 'evil.example' };
    expect(codeOf(() => refuseUnknownHost(request('GET', unknown), ours))).toBe('unknown_host');
    expect(
      codeOf(() => refuseUnknownHost(request('GET', { ...unknown, authorization: 'Bearer x' }), ours)),
    ).toBeUndefined();
    expect(codeOf(() => refuseUnknownHost(request('GET', { host: 'localhost:1' }), ours))).toBeUndefined();
  });
});

describe('refuseForeignOrigin', () => {
  const from = (origin: string | undefined, method = 'POST') =>
    request(method, { host: 'millrace.example:8080', ...(origin === undefined ? {} : { origin }) });

  it('a write with a session must come from a page of the same origin', () => {
    for (const origin of ['http://millrace.example:8080', 'https://millrace.example:8080'])
      expect(
        codeOf(() => refuseForeignOrigin(from(origin), session)),
        origin,
      ).toBeUndefined();
    for (const origin of [
      undefined,
      'null',
      'http://millrace.example',
      'http://millrace.example:9090',
      'http://evil.example',
      'http://millrace.example:8080.evil.example',
      'nonsense',
    ])
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
        expect(
          codeOf(() => refuseForeignOrigin(from(origin, method), session)),
          `${method} ${origin}`,
        ).toBe('forbidden');
  });

  it('a write without credentials may come without an origin, to sign in from a tool, but not from a foreign page', () => {
    expect(codeOf(() => refuseForeignOrigin(from(undefined), undefined))).toBeUndefined();
    expect(codeOf(() => refuseForeignOrigin(from('http://millrace.example:8080'), undefined))).toBeUndefined();
    expect(codeOf(() => refuseForeignOrigin(from('http://evil.example'), undefined))).toBe('forbidden');
  });

  it('a write with a key, and any read, may come from any origin', () => {
    for (const caller of [key, task])
      expect(codeOf(() => refuseForeignOrigin(from('http://evil.example'), caller))).toBeUndefined();
    for (const method of ['GET', 'HEAD', 'OPTIONS'])
      expect(codeOf(() => refuseForeignOrigin(from('http://evil.example', method), session))).toBeUndefined();
  });
});

describe('isOwnOrigin', () => {
  it('an origin is our own if its host and port are equal', () => {
    expect(isOwnOrigin('http://a:1', 'a:1')).toBe(true);
    for (const [origin, host] of [
      ['http://a:1', 'a:2'],
      ['http://a', 'a:1'],
      [null, 'a'],
      ['http://a', null],
      ['', ''],
    ] as const)
      expect(isOwnOrigin(origin, host), `${origin} ${host}`).toBe(false);
  });
});
