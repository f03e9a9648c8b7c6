/* The defects that a turn of the mock's script may have, for --help. The names come from
 * lua/agenthost/mock/fields.lua (see the Makefile), with which scripts are checked. */
#ifndef AH_CLI_MOCK_FIELDS_H
#define AH_CLI_MOCK_FIELDS_H

extern const char ah_mock_defects[]; /* their names, a space before each */

#endif
