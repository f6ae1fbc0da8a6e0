/**
 * Decides whether a URL may be called, and by which addresses.
 *
 * 1. Only https, unless the operator allows http.
 * 2. A name is resolved, and every address is judged: one that is refused refuses the name.
 * 3. The caller dials one of these addresses, so that nothing can change between the check and the connection.
 */
import { lookup as systemLookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { findAddressFault, type OutboundSettings, type Ranges } from './addresses.ts';
import { type Lookup, Names } from './names.ts';

export interface Target {
  readonly isSecure: boolean;
  /** The name or address as the receiver's certificate must have it. */
  readonly name: string;
  readonly port: number;
  /** As in the header `Host`. */
  readonly host: string;
  readonly path: string;
  /** Addresses that were checked, in the order in which to try them. Never empty. */
  readonly addresses: readonly string[];
}

type Checked = { readonly target: Target } | { readonly code: 'refused_address' | 'dns'; readonly detail: string };

export interface GuardOptions {
  /** For the advice in faults. */
  readonly settings: OutboundSettings;
  readonly allowHttp: boolean;
  readonly allowed: Ranges;
  readonly lookup?: Lookup;
  /** How long an answer of the resolver serves; default: some seconds. */
  readonly namesFreshMs?: number;
}

/** Names of this machine, which not every resolver knows. */
const loopbackNames = /^(?:(?:.+\.)?localhost|ip6-localhost|ip6-loopback)$/;
const loopbackAddresses = ['127.0.0.1', '::1'] as const;

const lookupBySystem: Lookup = async (name) =>
  (await systemLookup(name, { all: true, verbatim: false })).map(({ address }) => address);

export class Guard {
  readonly #options: GuardOptions;
  readonly #names: Names;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#names = new Names(options.lookup ?? lookupBySystem, options.namesFreshMs);
  }

  /** `waitMs`: how long the resolver may take. */
  async check(text: string, waitMs: number): Promise<Checked> {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined) return { code: 'refused_address', detail: 'it is not a valid URL' };
    const fault = this.#findSchemeFault(url);
    if (fault !== undefined) return { code: 'refused_address', detail: fault };
    const name = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
    if (loopbackNames.test(name)) return this.#judgeLoopback(url, name);
    if (isIP(name) !== 0) return this.#judge(url, name, [name]);
    const found = await this.#names.resolve(name, waitMs);
    return 'addresses' in found ? this.#judge(url, name, found.addresses) : { code: 'dns', detail: found.fault };
  }

  #findSchemeFault({ protocol }: URL): string | undefined {
    if (protocol === 'https:' || (protocol === 'http:' && this.#options.allowHttp)) return undefined;
    if (protocol === 'http:') return `http is not allowed: use https, or set ${this.#options.settings}_ALLOW_HTTP=true`;
    return `${protocol}// is not https://`;
  }

  #judge(url: URL, name: string, addresses: readonly string[]): Checked {
    const faults = addresses.flatMap((address) => findAddressFault(address, this.#options.allowed) ?? []);
    const [fault] = faults;
    if (fault !== undefined) return { code: 'refused_address', detail: fault };
    return { target: targetOf(url, name, addresses) };
  }

  /** Both addresses are known here, and an operator may have allowed only one of them. */
  #judgeLoopback(url: URL, name: string): Checked {
    const usable = loopbackAddresses.filter((address) => this.#options.allowed.has(address));
    if (usable.length > 0) return { target: targetOf(url, name, usable) };
    return { code: 'refused_address', detail: `${name} is refused (loopback)` };
  }
}

function targetOf(url: URL, name: string, addresses: readonly string[]): Target {
  const isSecure = url.protocol === 'https:';
  return {
    isSecure,
    name,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    host: url.host,
    path: `${url.pathname}${url.search}`,
    addresses,
  };
}
