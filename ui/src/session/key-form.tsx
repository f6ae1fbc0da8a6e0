/** Signs in by key. The field is left to the form, so a password manager may fill it. */
import { useId } from 'react';
import { Command } from '../kit/command.tsx';

interface Props {
  readonly busy: boolean;
  readonly submit: (key: string) => void;
}

export function KeyForm({ busy, submit }: Props) {
  const id = useId();
  const read = (form: FormData): void => {
    const key = form.get('key');
    if (typeof key === 'string' && key.trim() !== '') submit(key.trim());
  };
  return (
    <form
      className="key-form"
      onSubmit={(event) => {
        event.preventDefault();
        read(new FormData(event.currentTarget));
      }}
    >
      <label htmlFor={id}>Key</label>
      <input id={id} name="key" type="password" autoComplete="current-password" spellCheck={false} required />
      <button type="submit" className="button primary" disabled={busy}>
        {busy ? 'Signing in…' : 'Sign in'}
      </button>
      <p className="hint">
        No key at hand? On the server, <Command>millrace open</Command> prints a one-time link.
      </p>
    </form>
  );
}
