/**
 * Which IP addresses a request may reach: public unicast addresses, and ranges that the operator allows.
 *
 * 1. IPv4 inside IPv6 (mapped, compatible, NAT64, ISATAP) is judged as IPv4. 6to4 and Teredo are refused: both are obsolete.
 * 2. IPv6 must be global unicast (2000::/3), outside of the blocks that IANA has set aside.
 * 3. A text that is not an address is refused.
 */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import { MillraceError } from '../errors.ts';

type Block = readonly [block: string, why: string];

/** RFC 6890 and its successors. */
const refusedV4: readonly Block[] = [
  ['0.0.0.0/8', 'this network'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'shared by carriers'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'reserved'],
  ['192.0.2.0/24', 'documentation'],
  ['192.88.99.0/24', 'reserved'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
];

const refusedV6: readonly Block[] = [
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['fc00::/7', 'private'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'private'],
  ['ff00::/8', 'multicast'],
  ['2001::/23', 'reserved'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['3fff::/20', 'documentation'],
];

const blocks = [...refusedV4, ...refusedV6].map(([block, why]) => ({ list: listOf([block]), why }));
const globalUnicast = listOf(['2000::/3']);

/** The prefixes of addresses whose last four bytes are an IPv4 address: compatible, mapped, translated, NAT64. */
const prefixesOfV4: readonly string[] = [
  '000000000000000000000000',
  '00000000000000000000ffff',
  '0000000000000000ffff0000',
  '0064ff9b0000000000000000',
];
/** Bytes 8 to 11 of an ISATAP address, in hexadecimal. */
const isatap = /^.{16}0[02]005efe/;

export interface Ranges {
  has(address: string): boolean;
}

/** The beginning of the names of settings: of couriers, and of HTTP tasks. */
export type OutboundSettings = 'MILLRACE_BUS' | 'MILLRACE_HTTP';

/** Parses the ranges that an operator allows, such as `10.1.0.0/16` or `fd00::/8`. A single address is a range as well. */
export function parseRanges(texts: readonly string[], settings: OutboundSettings): Ranges {
  const bad = texts.filter((text) => !isRange(text));
  if (bad.length > 0)
    throw new MillraceError(
      'bad_configuration',
      `${settings}_ALLOW_CIDRS: ${bad.join(', ')} is not a range of addresses; write 10.1.0.0/16 or fd00::/8`,
    );
  const list = listOf(texts);
  return { has: (address) => listHas(list, address) };
}

function isRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const most = { 4: 32, 6: 128 }[isIP(address)];
  if (most === undefined || rest.length > 0 || address.includes('%')) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
}

/** Why a request may not reach this address; undefined: it may. */
export function findAddressFault(address: string, allowed: Ranges): string | undefined {
  if (address.includes('%') || isIP(address) === 0) return `${address} is not an address`;
  const inner = isIPv6(address) ? innerV4(address) : undefined;
  if (allowed.has(address) || (inner !== undefined && allowed.has(inner))) return undefined;
  const why = inner === undefined || isLoopbackV6(address) ? whyRefused(address) : whyRefused(inner);
  return why === undefined ? undefined : `${address} is refused (${why})`;
}

function isLoopbackV6(address: string): boolean {
  return /^0{31}[01]$/.test(hexOf(address));
}

function whyRefused(address: string): string | undefined {
  const found = blocks.find(({ list }) => listHas(list, address));
  if (found !== undefined) return found.why;
  return isIPv6(address) && !listHas(globalUnicast, address) ? 'not a public address' : undefined;
}

/** The IPv4 address inside an IPv6 address. */
function innerV4(address: string): string | undefined {
  const hex = hexOf(address);
  if (!prefixesOfV4.includes(hex.slice(0, 24)) && !isatap.test(hex)) return undefined;
  return Buffer.from(hex.slice(24), 'hex').join('.');
}

/** The 32 hexadecimal digits of a valid IPv6 address. */
function hexOf(address: string): string {
  const plain = address.replace(/\d+\.\d+\.\d+\.\d+$/, (v4) => {
    const [a = 0, b = 0, c = 0, d = 0] = v4.split('.').map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = '', tail] = plain.split('::');
  const groups = (text: string): string[] =>
    text === '' ? [] : text.split(':').map((group) => group.padStart(4, '0'));
  const [first, last] = [groups(head), groups(tail ?? '')];
  return [...first, '0000'.repeat(8 - first.length - last.length), ...last].join('');
}

/** One text for each address, so that two of them can be compared. A mapped IPv4 address is an IPv4 address. */
export function canonicalAddress(address: string): string {
  if (!isIPv6(address)) return address;
  const hex = hexOf(address.split('%')[0] ?? '');
  return hex.startsWith(prefixesOfV4[1] ?? '') ? Buffer.from(hex.slice(24), 'hex').join('.') : hex;
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    list.addSubnet(address, bits === undefined ? (family === 'ipv4' ? 32 : 128) : Number(bits), family);
  }
  return list;
}

function listHas(list: BlockList, address: string): boolean {
  return list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
}
