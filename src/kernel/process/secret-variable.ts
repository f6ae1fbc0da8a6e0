/**
 * A secret variable of the environment, or the file that holds its value: `MILLRACE_KEY_FILE` names the file for `MILLRACE_KEY`.
 *
 * Containers mount secrets as files whose owner and mode the container does not choose. So the file may belong to another user
 * and be readable for a group, unlike the secrets of a home. A file that every user may write is rejected: anybody could have
 * put the secret there.
 */
import { readFileSync, statSync } from 'node:fs';
import { type Fault, MillraceError } from '../../errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The variable that names the file. */
export function fileVariableOf(name: string): string {
  return `${name}_FILE`;
}

/** The value without white space around it; undefined: neither variable is set. */
export function findSecretVariable(env: Environment, name: string): { value?: string | undefined; fault?: Fault } {
  const path = fileVariableOf(name);
  const file = env[path];
  if (file === undefined || file === '') return { value: env[name] };
  if (env[name] !== undefined) return { fault: { path, message: `${name} is set as well: unset one of them` } };
  try {
    if ((statSync(file).mode & 0o002) !== 0)
      return { fault: { path, message: `every user may write ${file}: chmod o-w ${file}` } };
    const value = readFileSync(file, 'utf8').trim();
    return value === '' ? { fault: { path, message: `${file} is empty: write the secret into it` } } : { value };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { fault: { path, message: `the file cannot be read (${reason})` } };
  }
}

export function readSecretVariable(env: Environment, name: string): string | undefined {
  const { value, fault } = findSecretVariable(env, name);
  if (fault === undefined) return value;
  throw new MillraceError('bad_configuration', `${fault.path}: ${fault.message}`, { faults: [fault] });
}
