/** A certificate authority made for a test, and certificates that it has signed. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface TestAuthority {
  /** The file with the authority's own certificate. */
  readonly file: string;
  /** Signs a certificate. `names` as in openssl: `DNS:hooks.test`, `IP:127.0.0.1`. A negative number of days: expired. */
  sign(names: readonly string[]): Promise<Certificate>;
  /** A certificate that no authority has signed. */
  selfSigned(names: readonly string[]): Promise<Certificate>;
  close(): Promise<void>;
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

export async function makeAuthority(): Promise<TestAuthority> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-ca-'));
  const at = (name: string): string => join(folder, name);
  const run = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'ignore' });
  run('req', '-x509', ...newKey, '-keyout', at('ca.key'), '-out', at('ca.pem'), '-days', '2', '-subj', '/CN=Test CA');
  let made = 0;
  const read = async (stem: string): Promise<Certificate> => ({
    cert: await readFile(at(`${stem}.pem`), 'utf8'),
    key: await readFile(at(`${stem}.key`), 'utf8'),
  });
  return {
    file: at('ca.pem'),
    async sign(names) {
      const stem = `cert${++made}`;
      await writeFile(at(`${stem}.ext`), `subjectAltName=${names.join()}`);
      run('req', '-new', ...newKey, '-keyout', at(`${stem}.key`), '-out', at(`${stem}.csr`), '-subj', '/CN=receiver');
      const by = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at(`${stem}.ext`)];
      run('x509', '-req', '-in', at(`${stem}.csr`), ...by, '-out', at(`${stem}.pem`), '-days', '2');
      return read(stem);
    },
    async selfSigned(names) {
      const stem = `cert${++made}`;
      const alt = ['-addext', `subjectAltName=${names.join()}`];
      run('req', '-x509', ...newKey, '-keyout', at(`${stem}.key`), '-out', at(`${stem}.pem`), '-subj', '/CN=x', ...alt);
      return read(stem);
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}
