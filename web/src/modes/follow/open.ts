// The closer views that are open, as the link lists them: their ids, separated by spaces.

export function toggled(open: string | undefined, id: string, isOpen: boolean): string {
  const others = (open ?? '').split(' ').filter((one) => one !== '' && one !== id);
  return (isOpen ? [...others, id] : others).join(' ');
}
