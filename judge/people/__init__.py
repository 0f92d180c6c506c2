"""How far judges and people agree: statistics, labels, sheets for raters, calibration, panels."""
