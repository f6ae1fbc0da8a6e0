/** The keyboard: `/` to search, `?` for help, `t` for other tenants, `g` and a letter to go somewhere. Silent while one types. */
import { useEffect, useRef } from 'react';

interface Shortcuts {
  readonly search: () => void;
  readonly help: () => void;
  readonly tenants: () => void;
  /** The letter after `g`; false where no place has it. */
  readonly go: (letter: string) => void;
}

/** A letter within this time after `g` belongs to it. */
const patienceMs = 1_500;

/** Whether keys are text in this element. An editor may be in a shadow root, so the innermost element counts. */
function isTyping(event: KeyboardEvent): boolean {
  const [inner] = event.composedPath();
  return inner instanceof HTMLElement && (inner.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(inner.tagName));
}

function isBusy(event: KeyboardEvent): boolean {
  const isChord = event.ctrlKey || event.metaKey || event.altKey;
  return event.defaultPrevented || isChord || isTyping(event) || document.querySelector('dialog[open]') !== null;
}

export function useShortcuts({ search, help, tenants, go }: Shortcuts): void {
  // in a ref, so that a render between the two keys does not lose it
  const goingSince = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (isBusy(event)) return;
      const isGoing = event.timeStamp - goingSince.current < patienceMs;
      goingSince.current = Number.NEGATIVE_INFINITY;
      if (isGoing) go(event.key);
      else if (event.key === 'g') goingSince.current = event.timeStamp;
      else if (event.key === '/') search();
      else if (event.key === '?') help();
      else if (event.key === 't') tenants();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [search, help, tenants, go]);
}
