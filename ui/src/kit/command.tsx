/** A command to type, in line. */
export function Command({ children }: { readonly children: string }) {
  return <code className="command">{children}</code>;
}
