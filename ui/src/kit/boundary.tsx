/** Keeps a page that cannot be drawn from taking the house with it. Going to another page, or a reload, starts afresh. */
import { Component, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { Empty } from './empty.tsx';

interface Props {
  readonly children: ReactNode;
}

export function Boundary({ children }: Props) {
  const [path] = useLocation();
  return <Catch key={path}>{children}</Catch>;
}

class Catch extends Component<Props, { readonly isBroken: boolean }> {
  override readonly state = { isBroken: false };

  static getDerivedStateFromError() {
    return { isBroken: true };
  }

  override render(): ReactNode {
    if (!this.state.isBroken) return this.props.children;
    return (
      <Empty title="This page cannot be drawn">
        <p>That is a fault of the web interface; the browser's console has the details. The work itself goes on.</p>
        <button type="button" className="button" onClick={() => location.reload()}>
          Load again
        </button>
      </Empty>
    );
  }
}
