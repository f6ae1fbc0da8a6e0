/** Workers */
export default function WorkersPage() {
  return <h1>Workers</h1>;
}
