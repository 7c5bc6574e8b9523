"""Pure decisions: verdict, baseline, waivers."""
