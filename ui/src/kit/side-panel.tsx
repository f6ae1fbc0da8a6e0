/**
 * Details of a selected item, beside the view that it was selected in; on a phone, over the bottom of the page. Escape closes
 * it. It comes after the view, so that Tab leads from the selected item into it.
 */
import { type ReactNode, useEffect } from 'react';
import './side-panel.css';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly children: ReactNode;
}

export function SidePanel({ title, close, children }: Props) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      // a dialog over it closes first
      if (event.key === 'Escape' && !event.defaultPrevented && document.querySelector('dialog[open]') === null) close();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [close]);
  return (
    <aside className="side-panel" aria-label={title}>
      <header className="side-panel-head">
        <h2>{title}</h2>
        <button type="button" className="button bare" aria-label="Close" onClick={close}>
          <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
            <path d="m4 4 8 8M12 4l-8 8" />
          </svg>
        </button>
      </header>
      {children}
    </aside>
  );
}
