/** Keeps an error in one page from breaking the whole interface. Another page, or a reload, starts afresh. */
import { Component, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { Empty } from './empty.tsx';

interface Props {
  readonly path: string;
  readonly children: ReactNode;
}

export function Boundary({ children }: Pick<Props, 'children'>) {
  const [path] = useLocation();
  return <Catch path={path}>{children}</Catch>;
}

type Trouble = 'none' | 'unfetched' | 'broken';

/** For a part of the UI that is loaded when it is first opened. */
const unfetched = /dynamically imported module|importing a module|preload css/i;

interface State {
  readonly trouble: Trouble;
  readonly path: string;
}

class Catch extends Component<Props, State> {
  override readonly state: State = { trouble: 'none', path: this.props.path };

  /** A key would recreate the page at every step, and lose the focus. */
  static getDerivedStateFromProps({ path }: Props, state: State): Partial<State> | null {
    return path === state.path ? null : { path, trouble: 'none' };
  }

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { trouble: error instanceof Error && unfetched.test(error.message) ? 'unfetched' : 'broken' };
  }

  override render(): ReactNode {
    const { trouble } = this.state;
    if (trouble === 'none') return this.props.children;
    return (
      <Empty title={trouble === 'unfetched' ? 'This page could not be fetched' : 'This page cannot be drawn'}>
        <p>
          {trouble === 'unfetched'
            ? 'The server is away, or another version has been installed since this tab was opened.'
            : 'That is a fault of the web interface; the browser’s console has the details. The work itself goes on.'}
        </p>
        <button type="button" className="button" onClick={() => location.reload()}>
          Load again
        </button>
      </Empty>
    );
  }
}
