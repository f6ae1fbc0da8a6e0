/** Explains to a viewer why a page offers no actions. */
import { useMayOperate } from '../session/session.ts';

/** `actions`: what an operator can do there, such as `delete topics`. */
export function ReadOnlyNote({ actions }: { readonly actions: string }) {
  if (useMayOperate()) return null;
  return <p className="muted">Your key may only read. An operator can {actions}.</p>;
}
