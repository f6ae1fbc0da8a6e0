/** Dead letters of all subscribers. */
import { useTitle } from '../kit/title.ts';
import { BusHead } from './bus-head.tsx';
import { DeadLetters } from './dead-letters.tsx';
import { ReadOnlyNote } from './read-only-note.tsx';

export default function DeadLettersPage() {
  useTitle('Dead letters');
  return (
    <>
      <BusHead />
      <ReadOnlyNote actions="deliver dead letters again, or delete them" />
      <DeadLetters />
    </>
  );
}
