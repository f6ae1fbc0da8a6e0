/** The keyboard shortcuts. */
import { Dialog } from '../kit/dialog.tsx';
import { useIsRoot } from '../session/root-only.tsx';
import './dialogs.css';
import { usePlaces } from './navigation.tsx';

const everywhere = [
  { keys: ['/'], does: 'Search projects, jobs, tasks, triggers, or an id' },
  { keys: ['?'], does: 'This help' },
  { keys: ['Esc'], does: 'Close what is open' },
] as const;

const within = [
  { keys: ['←', '→', '↑', '↓'], does: 'Move in a graph, a grid or a chart' },
  { keys: ['Enter'], does: 'Open what has the focus; in a log, the next match' },
  { keys: ['Esc', 'Tab'], does: 'Leave the editor' },
] as const;

const ofRoot = [{ keys: ['t'], does: 'The same page of another tenant' }] as const;

export function HelpDialog({ close }: { readonly close: () => void }) {
  const places = usePlaces().flat();
  const offered = useIsRoot() ? [...everywhere, ...ofRoot] : everywhere;
  return (
    <Dialog title="Keyboard" close={close}>
      <dl className="shortcuts">
        {offered.map(({ keys, does }) => (
          <Row key={does} keys={keys} does={does} />
        ))}
        {places.map(({ letter, label }) => (
          <Row key={letter} keys={['g', letter]} does={label} />
        ))}
        {within.map(({ keys, does }) => (
          <Row key={does} keys={keys} does={does} />
        ))}
      </dl>
    </Dialog>
  );
}

function Row({ keys, does }: { readonly keys: readonly string[]; readonly does: string }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </div>
  );
}
