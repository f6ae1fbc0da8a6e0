import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { compileInto } from '../../../test/harness/compiled.ts';
import { MillraceError } from '../../errors.ts';
import { askOwner, claimHome, type HomeClaim, makeHome, stopOwner, tempFolder } from './home.ts';

const folder = mkdtempSync('/tmp/home-test-');
const compiled = join(folder, 'compiled');
const claims: HomeClaim[] = [];
const claimants: Claimant[] = [];
let homes = 0;

function newHome(): string {
  return join(folder, `home-${homes++}`);
}

/** Claims in this process; let go after the test. */
async function claim(home: string, onStop: () => void = () => {}): Promise<HomeClaim> {
  const taken = await claimHome(home, onStop);
  claims.push(taken);
  return taken;
}

async function rejection(work: Promise<unknown>): Promise<MillraceError> {
  const error: unknown = await work.then(
    () => 'done',
    (e: unknown) => e,
  );
  if (!(error instanceof MillraceError)) throw new Error('it was not refused', { cause: error });
  return error;
}

function refusal(home: string): Promise<MillraceError> {
  return rejection(claim(home));
}

interface Answer {
  readonly code?: string;
  readonly message?: string;
}

/** Another process that claims a home each time it is told to. */
class Claimant {
  readonly child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor() {
    const program = `
      import { createInterface } from 'node:readline';
      import { claimHome } from '${compiled}/postgres/embedded/home.js';
      console.log('up');
      for await (const home of createInterface({ input: process.stdin })) {
        const answer = await claimHome(home, () => {}).then(() => ({}), ({ code, message }) => ({ code, message }));
        console.log(JSON.stringify(answer));
      }`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    claimants.push(this);
  }

  async line(): Promise<string> {
    return String((await this.#lines.next()).value);
  }

  async claim(home: string): Promise<Answer> {
    this.child.stdin?.write(`${home}\n`);
    return JSON.parse(await this.line()) as Answer;
  }

  async kill(): Promise<void> {
    const ended = once(this.child, 'exit');
    if (this.child.kill('SIGKILL')) await ended;
  }
}

async function newClaimant(): Promise<Claimant> {
  const claimant = new Claimant();
  await claimant.line();
  return claimant;
}

beforeAll(() => compileInto(compiled, 'postgres/embedded/home.ts'));
afterEach(async () => {
  for (const taken of claims.splice(0)) await taken.release();
  for (const claimant of claimants.splice(0)) await claimant.kill();
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a home', () => {
  it('is made for its owner alone, and its parents are not shut', async () => {
    const home = await makeHome(join(folder, 'a', 'b'));
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'a')).mode & 0o077).not.toBe(0);
  });

  it('that is open to other users is refused, with the command that closes it', async () => {
    for (const mode of [0o777, 0o770, 0o755, 0o750, 0o720, 0o702, 0o704]) {
      const home = newHome();
      mkdirSync(home);
      writeFileSync(join(home, 'root-key'), 'a planted root key');
      chmodSync(home, mode);
      const error = await rejection(makeHome(home));
      expect([error.code, error.message]).toEqual([
        'bad_configuration',
        expect.stringContaining(`chmod 700 ${home}`) as unknown,
      ]);
      expect(statSync(home).mode & 0o777).toBe(mode);
    }
  });

  it('that is empty and others may list is made private, as if it had just been made', async () => {
    const home = newHome();
    mkdirSync(home);
    chmodSync(home, 0o755);
    await makeHome(home);
    expect(statSync(home).mode & 0o777).toBe(0o700);
  });

  it('that is empty and others may write to is refused', async () => {
    const home = newHome();
    mkdirSync(home);
    chmodSync(home, 0o777);
    expect((await rejection(makeHome(home))).message).toContain('may write to');
  });

  it('that others may only pass through keeps its mode', async () => {
    for (const mode of [0o700, 0o710, 0o711]) {
      const home = newHome();
      mkdirSync(home);
      chmodSync(home, mode);
      await makeHome(home);
      expect(statSync(home).mode & 0o777).toBe(mode);
    }
  });

  it.skipIf(process.getuid?.() !== 0)('of another user is refused, even to root', async () => {
    const home = await makeHome(newHome());
    chownSync(home, 12_345, 12_345);
    const { code, message } = await rejection(makeHome(home));
    expect(code).toBe('bad_configuration');
    expect(message).toContain('belongs to user 12345');
    expect(message).toContain(`chown 0 ${home}`);
  });

  it('that is a file, or below one, or not to be made, is refused in a sentence', async () => {
    const file = newHome();
    writeFileSync(file, '');
    expect((await rejection(makeHome(file))).message).toContain('is not a folder');
    for (const path of [join(file, 'home'), join(file, 'below', 'home'), '/proc/home', `/${'x'.repeat(300)}`]) {
      const { code, message } = await rejection(makeHome(path));
      expect([path, code]).toEqual([path, 'bad_configuration']);
      expect(message).toContain('MILLRACE_HOME');
    }
    expect((await rejection(stopOwner(file, 50))).message).toContain('cannot be used');
  });
});

describe('the claim on a home', () => {
  it('is refused to a second one, with the pid of the first, until that lets go', async () => {
    const home = newHome();
    const first = await claim(home);
    const error = await refusal(home);
    expect(error.code).toBe('already_running');
    expect(error.message).toContain(`process ${process.pid}`);
    await first.release();
    await claim(home);
  });

  it('is one for all names of the home', async () => {
    const home = newHome();
    await claim(home);
    symlinkSync(home, `${home}-alias`);
    expect((await refusal(`${home}-alias`)).code).toBe('already_running');
  });

  it('leaves nothing behind', async () => {
    const home = newHome();
    const first = await claim(home);
    await refusal(home);
    await first.release();
    expect(readdirSync(home)).toEqual([]);
  });

  it('of a killed process is taken over by exactly one of ten processes that try at once', async () => {
    const home = newHome();
    let ten = await Promise.all(Array.from({ length: 10 }, newClaimant));
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(ten.map((one) => one.claim(home)));
      const winners = ten.filter((_, i) => answers[i]?.code === undefined);
      expect(winners).toHaveLength(1);
      for (const { code, message } of answers.filter((answer) => answer.code !== undefined)) {
        expect(code).toBe('already_running');
        expect(message).toContain(`process ${winners[0]?.child.pid}`);
      }
      await winners[0]?.kill();
      ten = [...ten.filter((one) => one !== winners[0]), await newClaimant()];
    }
  }, 120_000);

  it.each([
    ['whose holder is dead', ['up.lock']],
    ['whose holder is dead, and whoever was replacing it', ['up.lock', 'up.lock.up-1-dead.sock']],
  ])('%s goes to exactly one of fifty', async (_, locks) => {
    for (let round = 0; round < 20; round++) {
      const home = await makeHome(newHome());
      for (const lock of locks) symlinkSync(lock === 'up.lock' ? 'up-1-dead.sock' : 'up-2-dead.sock', join(home, lock));
      const tries = await Promise.allSettled(Array.from({ length: 50 }, () => claim(home)));
      expect(tries.filter((one) => one.status === 'fulfilled')).toHaveLength(1);
      expect(readdirSync(home).filter((name) => name.includes('dead'))).toEqual([]);
    }
  });

  it('of a frozen process is still its', async () => {
    const home = newHome();
    const frozen = await newClaimant();
    await frozen.claim(home);
    frozen.child.kill('SIGSTOP');
    expect((await refusal(home)).message).toContain(`process ${frozen.child.pid}`);
  });

  it('works where the path is too long for a socket', async () => {
    const home = await makeHome(join(newHome(), 'x'.repeat(120)));
    const first = await claim(home);
    expect((await refusal(home)).message).toContain(`process ${process.pid}`);
    expect(await askOwner(home)).toBe(process.pid);
    expect(statSync(tempFolder(home, 'up')).mode & 0o777).toBe(0o700);
    await first.release();
    rmSync(tempFolder(home, 'up'), { recursive: true });
  });

  it('refuses a folder in the temp that others may enter', async () => {
    const home = await makeHome(join(newHome(), 'x'.repeat(120)));
    const squatted = tempFolder(home, 'up');
    mkdirSync(squatted);
    chmodSync(squatted, 0o777);
    const error = await refusal(home);
    rmSync(squatted, { recursive: true });
    expect(error.message).toContain(squatted);
  });
});

describe('the holder of a home', () => {
  it('is known by its pid, and nobody when none runs', async () => {
    const home = newHome();
    expect(await askOwner(home)).toBeUndefined();
    const first = await claim(home);
    expect(await askOwner(home)).toBe(process.pid);
    await first.release();
    expect(await askOwner(home)).toBeUndefined();
    expect(await stopOwner(home, 5_000)).toBeUndefined();
  });

  it('hears the wish to stop, and whoever wished waits until it has let go', async () => {
    const home = newHome();
    const wishes = new EventEmitter();
    const wished = once(wishes, 'stop');
    const first = await claim(home, () => wishes.emit('stop'));
    const order: string[] = [];
    const stopped = stopOwner(home, 60_000).then((pid) => order.push(`let go by ${pid}`));
    await wished;
    order.push('wished');
    await first.release();
    await stopped;
    expect(order).toEqual(['wished', `let go by ${process.pid}`]);
  });

  it('that does not let go is waited for only so long; the error names its pid and the remedy', async () => {
    const home = newHome();
    const frozen = await newClaimant();
    await frozen.claim(home);
    frozen.child.kill('SIGSTOP');
    const { code, message } = await rejection(stopOwner(home, 50));
    expect(code).toBe('already_running');
    for (const part of [
      `process ${frozen.child.pid}`,
      `kill -CONT ${frozen.child.pid}`,
      `kill -KILL ${frozen.child.pid}`,
    ])
      expect(message).toContain(part);
    expect(existsSync(home)).toBe(true);
  });
});

describe('the lock of a home', () => {
  it('that is a file or a folder is refused, with the command that removes it', async () => {
    for (const put of [(path: string) => writeFileSync(path, ''), (path: string) => mkdirSync(path)]) {
      const home = await makeHome(newHome());
      const lock = join(home, 'up.lock');
      put(lock);
      for (const { code, message } of [await refusal(home), await rejection(stopOwner(home, 50))]) {
        expect(code).toBe('bad_configuration');
        expect(message).toContain(`rm -r ${lock}`);
      }
      expect(readdirSync(home)).toEqual(['up.lock']);
    }
  });
});
