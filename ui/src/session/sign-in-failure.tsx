/** Why signing in did not work, in words that say what to do next. */
import { statusOf } from '../client.ts';
import { Command } from '../kit/command.tsx';
import { sentenceOf } from '../kit/failure.tsx';

export function SignInFailure({ error, byLink }: { readonly error: Error | null; readonly byLink: boolean }) {
  if (error === null) return null;
  return (
    <p className="sign-in-failure" role="alert">
      {statusOf(error) !== 401 ? (
        sentenceOf(error)
      ) : byLink ? (
        <>
          This link has been used, or is older than ten minutes. <Command>millrace open</Command> prints a new one.
        </>
      ) : (
        'This key is not known here.'
      )}
    </p>
  );
}
