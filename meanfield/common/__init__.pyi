"""Shared by all rooms: seeds, files, signals, memory, checks of input, and statistics of draws."""

from .arrays import Array as Array
from .estimates import FALSE_ALARM_BUDGET as FALSE_ALARM_BUDGET
from .estimates import NUMBERS_FAIL as NUMBERS_FAIL
from .estimates import PowerLaw as PowerLaw, fit_power_law as fit_power_law
from .files import DamagedFileWarning as DamagedFileWarning
from .files import UNREADABLE as UNREADABLE
from .files import behind_links as behind_links
from .files import require_file as require_file
from .files import require_writable as require_writable
from .files import write_text_whole as write_text_whole
from .files import write_whole as write_whole
from .gaussian_averages import mean_square as mean_square
from .machine import collect_seldom as collect_seldom
from .machine import share_machine as share_machine
from .seeds import checked_seed as checked_seed
from .seeds import derived_seed as derived_seed
from .seeds import stream as stream
from .signals import TERMINATED as TERMINATED
from .signals import Terminated as Terminated
from .signals import terminable as terminable
from .signals import when_terminated as when_terminated
from .signals import while_read as while_read
from .validation import MOST_DRAWS as MOST_DRAWS
from .validation import MOST_LAYERS as MOST_LAYERS
from .validation import OutsideFloats as OutsideFloats
from .validation import PremiseWarning as PremiseWarning
from .validation import require_choice as require_choice
from .validation import require_count as require_count
from .validation import require_counts as require_counts
from .validation import require_draws as require_draws
from .validation import require_positive as require_positive
