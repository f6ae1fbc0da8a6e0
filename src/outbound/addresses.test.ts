/** Addresses and hosts that deliveries may and may not reach, as a table. */
import { describe, expect, it } from 'vitest';
import { canonicalAddress, findAddressFault, parseRanges } from './addresses.ts';
import { Guard } from './guard.ts';

const split = (text: string): string[] => text.trim().split(/\s+/);
const none = parseRanges([], 'MILLRACE_BUS');
const verdict = (address: string, ranges = none): 'refused' | 'allowed' =>
  findAddressFault(address, ranges) === undefined ? 'allowed' : 'refused';

describe('addresses', () => {
  it.each(
    split(`
      0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.8.8.8 169.254.169.254 172.16.0.1
      172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9
      224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::10.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1
      ::ffff:169.254.169.254 0:0:0:0:0:ffff:10.0.0.1 ::ffff:0:10.0.0.1 64:ff9b::10.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1
      2002:7f00:1:: 2002:808:808::1 2001::1 2001:0:4136:e378::1 2001:10::1 2001:db8::1 3fff::1 fc00::1 fd12:3456::1
      fe80::1 fe80::1%eth0 fec0::1 ff02::1 100::1 5f00::1 2606:4700::200:5efe:10.0.0.1 2606:4700:0:0:0:5efe:7f00:1
      4000::1 example.com 1.2.3 01.2.3.4
    `),
  )('the address %s is refused', (address) => {
    expect(verdict(address)).toBe('refused');
  });

  it.each(
    split(`
      1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255
      169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.1 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
      223.255.255.255 2606:4700:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2001:4860:4860::8888
      2606:4700::200:5efe:8.8.8.8
    `),
  )('the address %s is allowed', (address) => {
    expect(verdict(address)).toBe('allowed');
  });

  it.each([
    ['10.1.2.3', '10.1.0.0/16', 'allowed'],
    ['10.2.0.1', '10.1.0.0/16', 'refused'],
    ['::ffff:10.1.2.3', '10.1.0.0/16', 'allowed'],
    ['::1', '127.0.0.0/8', 'refused'],
    ['::1', '::1', 'allowed'],
    ['fd00::7', 'fd00::/8', 'allowed'],
    ['127.0.0.1', '127.0.0.1', 'allowed'],
    ['127.0.0.2', '127.0.0.1', 'refused'],
    ['169.254.169.254', '0.0.0.0/0', 'allowed'],
  ])('the address %s is judged with the range %s', (address, range, expected) => {
    expect(verdict(address, parseRanges([range], 'MILLRACE_BUS'))).toBe(expected);
  });

  it.each(['10.0.0.0/33', 'fd00::/129', '10.0.0', 'example.com/8', '10.0.0.0/8/8', '10.0.0.0/x', 'fe80::1%eth0/64'])(
    'the range %s is a fault that names its variable',
    (range) => {
      expect(() => parseRanges([range], 'MILLRACE_BUS')).toThrow(`MILLRACE_BUS_ALLOW_CIDRS: ${range} is not a range`);
    },
  );

  it('two texts of one address are equal', () => {
    expect(canonicalAddress('::ffff:1.2.3.4')).toBe('1.2.3.4');
    expect(canonicalAddress('2606:4700::1')).toBe(canonicalAddress('2606:4700:0:0:0:0:0:1'));
    expect(canonicalAddress('2606:4700::1')).not.toBe(canonicalAddress('2606:4700::2'));
  });
});

describe('callbacks', () => {
  const lookups: string[] = [];
  const lookup = async (name: string): Promise<readonly string[]> => {
    lookups.push(name);
    if (name === 'mixed.test') return ['8.8.8.8', '10.0.0.1'];
    if (name === 'good.test') return ['8.8.8.8', '2606:4700::1'];
    if (name === 'empty.test') return [];
    throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' });
  };
  const guard = new Guard({ settings: 'MILLRACE_BUS', allowHttp: false, allowed: none, lookup });
  const check = async (url: string): Promise<unknown> => {
    const checked = await guard.check(url, 1_000);
    return 'code' in checked ? checked.code : checked.target.addresses;
  };

  it.each(
    split(`
      https://127.0.0.1/ https://2130706433/ https://0x7f000001/ https://0177.0.0.1/ https://127.1/ https://0x7f.1/
      https://１２７.０.０.１/ https://127.0.0.1./ https://[::1]/ https://[::ffff:127.0.0.1]/ https://localhost/
      https://localhost./ https://LOCALHOST/ https://a.localhost/ https://ip6-localhost/ https://ip6-loopback./
      https://ｌｏｃａｌｈｏｓｔ/ https://%6c%6f%63%61%6c%68%6f%73%74/ https://x:y@10.0.0.1/ https://0/
      https://169.254.169.254/latest/meta-data https://[64:ff9b::a00:1]/ https://[2002:7f00:1::]/ http://8.8.8.8/
      http://good.test/ ftp://8.8.8.8/ file:///etc/passwd nonsense https://mixed.test/
    `),
  )('the callback %s is refused', async (url) => {
    expect(await check(url)).toBe('refused_address');
  });

  it('no name of this machine is looked up', () => {
    expect(lookups).toContain('mixed.test');
    expect(lookups.filter((name) => /local|loop/.test(name))).toEqual([]);
  });

  it('a name with only public addresses is allowed, and one without any is a fault of DNS', async () => {
    expect(await check('https://good.test/x?y=1')).toEqual(['8.8.8.8', '2606:4700::1']);
    expect(await check('https://1.1.1.1:8443/')).toEqual(['1.1.1.1']);
    expect(await check('https://empty.test/')).toBe('dns');
    expect(await check('https://missing.test/')).toBe('dns');
  });

  it('http and loopback names are allowed where the operator allows them', async () => {
    const open = new Guard({
      settings: 'MILLRACE_BUS',
      allowHttp: true,
      allowed: parseRanges(['127.0.0.0/8'], 'MILLRACE_BUS'),
      lookup,
    });
    expect(await open.check('http://localhost:3000/', 1_000)).toMatchObject({ target: { addresses: ['127.0.0.1'] } });
    expect(await open.check('http://10.0.0.1/', 1_000)).toMatchObject({ code: 'refused_address' });
  });
});
